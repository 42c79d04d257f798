package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/rdd"
)

// tableFlags describe how tables of text are written.
type tableFlags struct {
	header, separator, quote, escape, comment, null, malformed string
	quoted                                                     bool
}

func (f *tableFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.header, "header", "auto", "whether tables begin with a header: true, false or auto")
	fs.StringVar(&f.separator, "separator", "",
		"field separator of tables, a blank being runs of blanks (default: detected)")
	fs.StringVar(&f.quote, "quote", `"`, "quote of fields of tables, or none")
	fs.BoolVar(&f.quoted, "quoted", false, "quoted fields of tables hold newlines, although none does at their "+
		"beginning")
	fs.StringVar(&f.escape, "escape", "", `character before a quote within quotes, as \ (default: quotes are doubled)`)
	fs.StringVar(&f.comment, "comment", "", "character that begins lines of tables which are passed over "+
		"(default: none)")
	fs.StringVar(&f.null, "null", "", "text of fields of tables that are missing, beside the usual ones")
	f.malformed = "fail"
}

// registerMalformed adds the flag that only makes sense where rows may be left out.
func (f *tableFlags) registerMalformed(fs *pflag.FlagSet) {
	fs.StringVar(&f.malformed, "malformed", "fail",
		"records of training tables that are malformed: fail, or drop them and say how many")
}

func (f *tableFlags) check(c *cobra.Command) error {
	for name, text := range map[string]string{"separator": f.separator, "quote": f.quote, "escape": f.escape,
		"comment": f.comment} {
		if _, ok := character(text); !ok && !(name == "quote" && text == "none") {
			return usage(c, name, "%q is not one character", text)
		}
	}
	return volley.FirstError(volley.OneOf("header", f.header, "auto", "true", "false"),
		volley.OneOf("malformed", f.malformed, "fail", "drop"))
}

// character returns the one that a flag has; 0 is none.
func character(text string) (c byte, ok bool) {
	switch {
	case text == "":
		return 0, true
	case text == `\t`:
		return '\t', true
	}
	return text[0], len(text) == 1
}

// set fills in the options of an input. They have been checked.
func (f *tableFlags) set(in *rdd.Input) {
	if f.header != "auto" {
		h := f.header == "true"
		in.Header = &h
	}
	in.Separator, _ = character(f.separator)
	in.Escape, _ = character(f.escape)
	in.Comment, _ = character(f.comment)
	if in.NoQuotes = f.quote == "none"; !in.NoQuotes && f.quote != `"` {
		in.Quote, _ = character(f.quote)
	}
	in.Null, in.Quoted = f.null, f.quoted
	if f.malformed == "drop" {
		in.Malformed = rdd.DropMalformed
	}
}

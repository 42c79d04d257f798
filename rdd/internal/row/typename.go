package row

import (
	"reflect"
	"regexp"
	"strings"
)

// TypeName returns the full name of T, as plans and messages have it: types of package
// rdd that are aliases of internal ones by the names that a user knows.
func TypeName[T any]() string {
	t := reflect.TypeFor[T]()
	return public(t.PkgPath()) + "." + nameOf(t)
}

// nameOf returns the name of a type as t.String does, by public names.
func nameOf(t reflect.Type) string { return public(t.String()) }

// public replaces the names of internal packages by that of package rdd, whose aliases
// users see.
func public(name string) string {
	name = strings.NewReplacer(home+"/internal/row", home, home+"/internal/exec", home).Replace(name)
	return aliases.ReplaceAllString(name, "rdd.$1")
}

// home is the path of package rdd.
var home, _, _ = strings.Cut(reflect.TypeFor[Malformed]().PkgPath(), "/internal/")

// aliases are the internal types that users know by an alias.
var aliases = regexp.MustCompile(`\b(?:row|exec)\.(Pair\[|Malformed\b|CoGrouped\[)`)

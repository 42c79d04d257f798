// Command peers runs other systems beside ours, bundled jobs on the same files, what a cluster costs and survives,
// dataflow jobs, and those of parameter tables, and prints ratios of this one run. It needs the peers' folder (its own
// setup and generate.py done; not for tables), python3 and Java; the product needs none of them.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	peers := flag.String("peers", "../shared/peers", "folder of the peers' scripts")
	volley := flag.String("volley", "bin/volley", "our program")
	only := flag.String("only", "", "cluster, arrow, or ml, dataflow or tables with jobs and systems after it, "+
		"separated by commas; all without it")
	documents := flag.Int("documents", 6000, "documents of the planted corpora of tables,lda: 300,000 are as many as "+
		"the articles of the New York Times that others measure by")
	flag.Parse()
	err := error(nil)
	flowsOnly := strings.HasPrefix(*only, "dataflow")
	if mlOnly := *only == "" || strings.HasPrefix(*only, "ml"); mlOnly {
		err = mlPeers(filepath.Join(*peers, "ml"), *volley, strings.TrimPrefix(strings.TrimPrefix(*only, "ml"), ","))
	}
	if err == nil && (*only == "" || *only == "cluster") {
		err = clusterPeers(context.Background(), *peers)
	}
	if err == nil && (*only == "" || flowsOnly) {
		err = dataflowPeers(context.Background(), *peers, *only)
	}
	if job, tables := strings.CutPrefix(*only, "tables"); err == nil && (*only == "" || tables) {
		err = tablePeers(*peers, "integration/bench/peers", *volley, strings.TrimPrefix(job, ","),
			*documents)
	}
	if err == nil && (*only == "" || *only == "arrow") {
		err = arrowPeers("integration/bench/peers")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func fromHome(env, rest string) string {
	if v := os.Getenv(env); v != "" {
		return v
	}
	home, _ := os.UserHomeDir()
	return filepath.Join(home, ".cache", "volley-peers", rest)
}

package main

import "github.com/spf13/cobra"

func inspectCommand() *cobra.Command  { return &cobra.Command{Use: "inspect"} }
func generateCommand() *cobra.Command { return &cobra.Command{Use: "generate"} }

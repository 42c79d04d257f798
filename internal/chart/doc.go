// Package chart owns pictures of numbers: lines, strips of shares, bars and stacks, as SVG that reads without colour,
// by screen readers and in light and dark, and as tables.
//
// It must not know what the numbers are of, nor read or write files.
package chart

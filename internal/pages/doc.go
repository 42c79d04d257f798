// Package pages owns what all pages of a browser have in common: their head and frame, what a browser may do for them,
// their style and script, and how one that is left open is kept as things are.
//
// It must not know what is shown, or who may see it.
package pages

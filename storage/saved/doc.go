// Package saved owns how a dataset is saved as one: its parts are staged beside the directory that they are for, or
// under names that no other attempt has in a store of objects, and appear all at once, listed by a marker.
//
// It must not know what is in the parts, or who writes them.
package saved

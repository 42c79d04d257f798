// Package huge owns memory in huge pages: slices that are read and written at random, whose pages a processor would
// otherwise have to look up again and again. It must not know what is in them.
package huge

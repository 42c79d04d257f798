// Package testrows writes the rows that tests of several families train on. Only tests
// import it.
package testrows

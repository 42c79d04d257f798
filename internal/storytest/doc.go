// Package storytest owns how the commands of stories are read: datadriven files in testdata, each command an event,
// its arguments in one notation for all packages.
//
// It is for tests, and knows no machine that a story is about.
package storytest

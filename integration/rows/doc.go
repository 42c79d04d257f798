// Package rows holds types of rows and keys against the dataset API: values of many types
// go every way that a plan has and come back as they were, and keys are equal everywhere
// by one law.
//
// It owns tests only. It must not use anything but what a user's program can.
package rows

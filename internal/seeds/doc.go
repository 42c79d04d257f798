// Package seeds tells tests how much to try: little under the race detector, more by default, most in a soak.
//
// It owns these sizes alone, and must not be imported by anything but tests.
package seeds

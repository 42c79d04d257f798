// Package objects reads and writes the objects of stores by their names: s3://BUCKET/KEY, gs://BUCKET/KEY, and
// https://HOST/PATH, which can be read only.
//
// It owns the connections to stores, with the credentials of the environment; reads by ranges, ahead of their reader;
// and writes that appear whole. It must not know what is in an object, nor what a directory of objects means.
package objects

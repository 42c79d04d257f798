// Package model owns what all models are: a directory of plain data that appears whole or not
// at all, how the rows that one is asked about are read as those it was trained on, and the
// metrics of its answers.
//
// It must not know any kind of model: each registers how it is read (Kind).
package model

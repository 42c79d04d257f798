package rdd

import (
	"math"

	"github.com/fxamacker/cbor/v2"
)

// cborMode is how the session and its tasks write what they tell each other of shuffles.
// No value of the user's is in it but as bytes.
var cborMode = func() cbor.EncMode {
	o := cbor.CoreDetEncOptions()
	o.ShortestFloat, o.NaNConvert, o.InfConvert = cbor.ShortestFloatNone, cbor.NaNConvertNone, cbor.InfConvertNone
	o.Time = cbor.TimeRFC3339NanoUTC
	m, err := o.EncMode()
	if err != nil {
		panic(err) // the options are constants
	}
	return m
}()

// cborReading takes whatever cborMode writes: strings that are not UTF-8, and
// as many rows as fit into memory.
var cborReading = func() cbor.DecMode {
	m, err := cbor.DecOptions{UTF8: cbor.UTF8DecodeInvalid, MaxArrayElements: math.MaxInt32,
		MaxMapPairs: math.MaxInt32}.DecMode()
	if err != nil {
		panic(err) // the options are constants
	}
	return m
}()

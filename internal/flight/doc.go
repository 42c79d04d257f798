// Package flight owns the door for Arrow clients: the protocol of Arrow Flight, tickets that expire, and streams of
// which one that is not read ends.
//
// It must not know what there is to read, or who may: drivers say so (Catalog). An executor's door shows files alone,
// to who has a ticket of the driver's.
package flight

// Package roots has the certificates of the public authorities, for machines and images that have none.
//
// It owns when they are read, which is before the first connection that may need them: reading them takes longer than
// most commands. It must not know what connections are for.
package roots

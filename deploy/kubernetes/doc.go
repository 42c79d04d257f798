// Package kubernetes holds the Helm chart and the manifests of a cluster against the types of Kubernetes' API, and
// against the commands that they start.
//
// It must make no manifests that the chart does not.
package kubernetes

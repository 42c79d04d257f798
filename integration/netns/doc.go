// Package netns makes networks on this machine: hosts that are namespaces with addresses of their own, joined by a
// switch that this process is, so that links can be slow, lossy or cut, one way or both, under a seed. (It is no bridge
// with netem, since many kernels are built without that.) Tests run Volley's processes on them as on machines. It needs
// root and iproute2; what it makes is gone with Close.
package netns

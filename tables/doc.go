// Package tables keeps parameters in tables that workers read and add to while others are behind or ahead of them:
// under bsp, ssp (LazyTable), asp, cap, vap or cvap (Petuum). A program declares tables and workers in its plan, and
// follows the clocks that all workers have finished.
//
// It owns the tables of a program, what its workers see of them, and the shells that carry out what
// tables/consistency decides. It must not decide what a read may miss, nor know of jobs.
package tables

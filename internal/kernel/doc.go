// Package kernel owns the numeric inner loops whose results enter parameters,
// objectives and stop decisions.
//
// Every kernel has one result. Its definition fixes the virtual lanes a sum is
// spread over, the order in which lanes combine, which products are fused
// with their sum and which polynomials stand for exp and log1p. The plain Go
// code here is that definition; the assembly chosen at run time gives the
// same bits on every CPU. A row's contribution is added to a sum in visiting
// order, one row after the other, so that no result depends on how rows are
// grouped into blocks.
//
// It must not start goroutines, allocate in a loop, know what a split or a
// job is, or call math.Exp, math.Log or math.Pow, which differ by CPU.
package kernel

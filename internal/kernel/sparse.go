package kernel

import "unsafe"

// Rows of a sparse matrix: row r has the nonzeros Offsets[r] to Offsets[r+1]
// of Indices and Values. Indices are column numbers below the length of the
// vectors it is multiplied with; the owner of the data has checked that.
type Sparse[T Float] struct {
	Offsets []int32
	Indices []int32
	Values  []T
}

// SparseDots computes z[i] = w · row rows[i]. Nonzero k of a row belongs to
// lane k mod 4; products are rounded before they are added, since most CPUs
// gain nothing from fusing a gathered product.
func SparseDots[T Float](z, w []float64, m Sparse[T], rows []int32) {
	if sparseDotsVector(z, w, m, rows) {
		return
	}
	for i, r := range rows {
		lo, hi := m.Offsets[r], m.Offsets[r+1]
		z[i] = sparseDot(w, m.Indices[lo:hi], m.Values[lo:hi])
	}
}

func sparseDot[T Float](w []float64, idx []int32, val []T) float64 {
	var a0, a1, a2, a3 float64
	base := unsafe.SliceData(w)
	at := func(j int32) float64 { // checked when the pack was opened
		return *(*float64)(unsafe.Add(unsafe.Pointer(base), uintptr(uint32(j))*8))
	}
	k := 0
	for ; k+4 <= len(idx) && k+4 <= len(val); k += 4 {
		i4, v4 := idx[k:k+4:k+4], val[k:k+4:k+4]
		a0 += float64(float64(v4[0]) * at(i4[0]))
		a1 += float64(float64(v4[1]) * at(i4[1]))
		a2 += float64(float64(v4[2]) * at(i4[2]))
		a3 += float64(float64(v4[3]) * at(i4[3]))
	}
	switch len(idx) - k {
	case 3:
		a2 += float64(float64(val[k+2]) * at(idx[k+2]))
		fallthrough
	case 2:
		a1 += float64(float64(val[k+1]) * at(idx[k+1]))
		fallthrough
	case 1:
		a0 += float64(float64(val[k]) * at(idx[k]))
	}
	return (a0 + a2) + (a1 + a3)
}

// SparseAccumulate adds Σ_i coef[i] · row rows[i] to sum in the order of
// rows, products rounded before they are added.
func SparseAccumulate[T Float](sum, coef []float64, m Sparse[T], rows []int32) {
	if sparseAccumulateVector(sum, coef, m, rows) {
		return
	}
	base := unsafe.SliceData(sum)
	for i, r := range rows {
		lo, hi := m.Offsets[r], m.Offsets[r+1]
		idx, val, c := m.Indices[lo:hi], m.Values[lo:hi], coef[i]
		val = val[:len(idx)]
		for k, j := range idx { // j was checked when the pack was opened
			p := (*float64)(unsafe.Add(unsafe.Pointer(base), uintptr(uint32(j))*8))
			*p += float64(c * float64(val[k]))
		}
	}
}

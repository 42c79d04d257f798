package tables_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/tables"
)

// TestLargeTablesWithinALimit: a table of which caches may hold a part only has the numbers of one that they hold as a
// whole. Each worker reads all rows in each clock, and adds what it has read to the next.
func TestLargeTablesWithinALimit(t *testing.T) {
	const rows, columns, workers, clocks = 600, 4096, 3, 4 // 20 MB
	sums := map[string][]float64{}
	for _, m := range []tables.Model{tables.BSP(), tables.SSP(1), tables.CAP(1)} {
		for _, limit := range []string{"8GiB", "64MiB"} { // caches of two clients: 8 MiB each
			cfg, err := volley.ParseConfig("--executors", "2", "--data-dir", t.TempDir(), "--memory", limit)
			if err != nil {
				t.Fatal(err)
			}
			type plan struct {
				table *tables.Table[float64]
				work  tables.Work[int, int64, struct{}]
			}
			_, err = volley.Run(context.Background(), cfg, "large", 0, func(g *rdd.Graph, _ int) (p plan) {
				p.table = tables.New[float64](g, "large", tables.Dense(rows, columns), m)
				do := func(c *tables.Clock[int, int64, struct{}]) error {
					at := p.table.In(c)
					for row := range rows {
						read := at.Row(row).Values[7]
						at.Inc((row+1)%rows, 7, 1)
						at.Inc(row, 8, read)
					}
					return nil
				}
				p.work = tables.Worker(rdd.Pack(rdd.Range(g, 0, 12, 1), rdd.Splits(workers)), do, p.table)
				return p
			}, func(ctx context.Context, s *rdd.Session, _ int, p plan) (string, error) {
				for tick, err := range p.work.Clocks(ctx, s, 0, clocks, clocks) {
					if err != nil {
						return "", err
					}
					if tick.Clock < clocks {
						continue
					}
					for row := range rows {
						v := p.table.At(tick, row).Values
						if v[7] != workers*clocks {
							return "", fmt.Errorf("%v, %s: row %d has %v of %d "+
								"additions", m, limit, row, v[7], workers*clocks)
						}
						sums[m.String()+limit] = append(sums[m.String()+limit], v[8])
					}
				}
				return "", nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if !slices.Equal(sums["bsp8GiB"], sums["bsp64MiB"]) {
		t.Error("under bsp a limit changes what is read")
	}
}

// Command orders is an ordinary job of a Spark user: orders, customers and products of a shop are joined, the
// revenue of each country is added up, and the three largest orders of each are saved as Parquet, in a directory
// for each country. The README beside it has the same job in PySpark and in DuckDB's SQL.
//
//	go run ./examples/10-orders -- --orders orders.csv --customers customers.csv --products products.csv --output top
package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/rdd"
)

type args struct {
	Orders    string `usage:"CSV of orders: order, customer, product, quantity, note"`
	Customers string `usage:"CSV of customers: customer, country"`
	Products  string `usage:"CSV of products: product, name, price"`
	Output    string `usage:"directory for the Parquet files; it must not exist"`
}

type order struct {
	Order    int64  `col:"order"`
	Customer int64  `col:"customer"`
	Product  int64  `col:"product"`
	Quantity *int64 `col:"quantity"` // not known of some
	Note     string `col:"note"`
}

type customer struct {
	ID      int64  `col:"customer"`
	Country string `col:"country"`
}

type product struct {
	ID    int64   `col:"product"`
	Name  string  `col:"name"`
	Price float64 `col:"price"`
}

// sold is a row of the output.
type sold struct {
	Country string  `col:"country"`
	Order   int64   `col:"order"`
	Product string  `col:"product"`
	Amount  float64 `col:"amount"`
	Note    string  `col:"note"`
}

type steps struct {
	Revenue rdd.Action[map[string]float64]
	Save    rdd.Action[int64]
}

func build(g *rdd.Graph, a args) steps {
	orders := rdd.Filter(rdd.CSV[order](g, rdd.CSVOptions{}, a.Orders), func(o order) bool { return o.Quantity != nil })
	products := rdd.KeyBy(rdd.CSV[product](g, rdd.CSVOptions{}, a.Products), func(p product) int64 { return p.ID })
	customers := rdd.KeyBy(rdd.CSV[customer](g, rdd.CSVOptions{}, a.Customers), func(c customer) int64 { return c.ID })

	priced := rdd.JoinWith(rdd.KeyBy(orders, func(o order) int64 { return o.Product }), products,
		func(_ int64, o order, p product) rdd.Pair[int64, sold] {
			return rdd.Pair[int64, sold]{Key: o.Customer, Value: sold{Order: o.Order, Product: p.Name,
				Amount: float64(*o.Quantity) * p.Price, Note: o.Note}}
		})
	all := rdd.JoinWith(priced, customers, func(_ int64, s sold, c customer) rdd.Pair[string, sold] {
		s.Country = c.Country
		return rdd.Pair[string, sold]{Key: c.Country, Value: s}
	})
	largest := rdd.Desc(func(s sold) float64 { return s.Amount }).Then(rdd.Asc(func(s sold) int64 { return s.Order }))
	top := rdd.FlatMap(rdd.TopByKey(all, 3, largest), func(p rdd.Pair[string, []sold]) []sold { return p.Value })
	return steps{
		Revenue: rdd.CollectAsMap(rdd.SumByKey(rdd.MapValues(all, func(s sold) float64 { return s.Amount }))),
		Save:    rdd.SaveParquet(top, a.Output, rdd.PartitionedBy("country")),
	}
}

func run(ctx context.Context, s *rdd.Session, a args, p steps) error {
	revenue, err := p.Revenue.Run(ctx, s)
	if err != nil {
		return err
	}
	for _, country := range slices.Sorted(maps.Keys(revenue)) {
		fmt.Printf("%14.2f  %s\n", revenue[country], country)
	}
	n, err := p.Save.Run(ctx, s)
	if err == nil {
		fmt.Printf("%d orders in %s\n", n, a.Output)
	}
	return err
}

func main() { volley.Main("orders", build, run) }

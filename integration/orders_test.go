package integration

import (
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// writeCSV writes a table by the standard library.
func writeCSV(t *testing.T, path string, rows [][]string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := csv.NewWriter(f)
	if err := w.WriteAll(rows); err != nil {
		t.Fatal(err)
	}
}

// shop writes the tables of examples/10-orders, with quotes, newlines and nulls, and returns the revenue by country.
func shop(t *testing.T, dir string, orders int) map[string]float64 {
	r := rand.New(rand.NewPCG(1, 2))
	countries, price := []string{"DE", "FR", "CI", "a/b"}, map[int]float64{}
	tables := map[string][][]string{"orders": {{"order", "customer", "product", "quantity", "note"}},
		"customers": {{"customer", "country"}}, "products": {{"product", "name", "price"}}}
	for i := range 200 {
		tables["customers"] = append(tables["customers"], []string{strconv.Itoa(i), countries[i%4]})
	}
	for i := range 30 {
		price[i] = float64(r.IntN(4000)) / 8
		tables["products"] = append(tables["products"], []string{strconv.Itoa(i), fmt.Sprint("thing ", i),
			strconv.FormatFloat(price[i], 'g', -1, 64)})
	}
	revenue := map[string]float64{}
	for i := range orders {
		customer, product, quantity := r.IntN(200), r.IntN(30), r.IntN(20)
		written := strconv.Itoa(quantity)
		if quantity == 0 {
			written = ""
		}
		revenue[countries[customer%4]] += float64(quantity) * price[product]
		note := []string{"", `say "hi", you`, "a line\nand another", "ok"}[r.IntN(4)]
		tables["orders"] = append(tables["orders"], []string{strconv.Itoa(i), strconv.Itoa(customer),
			strconv.Itoa(product), written, note})
	}
	for name, rows := range tables {
		writeCSV(t, filepath.Join(dir, name+".csv"), rows)
	}
	return revenue
}

const topInDuckDB = `import duckdb
db = duckdb.connect()
db.execute('''CREATE VIEW sold AS SELECT country, "order", name AS product, quantity * price AS amount, coalesce(note, '') AS note
    FROM read_csv('orders.csv') JOIN read_csv('products.csv') USING (product) JOIN read_csv('customers.csv') USING (customer)
    WHERE quantity IS NOT NULL''')
want = db.execute('''SELECT * FROM sold QUALIFY row_number() OVER (PARTITION BY country ORDER BY amount DESC, "order") <= 3
    ORDER BY ALL''').fetchall()
got = db.execute('''SELECT country, "order", product, amount, note
    FROM read_parquet('top/*/part-*', hive_partitioning = true) ORDER BY ALL''').fetchall()
print(got == want, len(want))`

// TestTheOrdersLesson prints what a loop over the tables adds up, and saves what DuckDB selects, where that is there.
func TestTheOrdersLesson(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	revenue := shop(t, dir, 5000)
	program := built(t, "./examples/10-orders")
	args := []string{"--executors", "3", "--"}
	for _, name := range []string{"orders", "customers", "products"} {
		args = append(args, "--"+name, filepath.Join(dir, name+".csv"))
	}
	out, err := exec.Command(program, append(args, "--output", filepath.Join(dir, "top"))...).Output()
	if err != nil {
		t.Fatal(err)
	}
	for country, sum := range revenue {
		if want := fmt.Sprintf("%14.2f  %s\n", sum, country); !strings.Contains(string(out), want) {
			t.Errorf("it does not print %q:\n%s", want, out)
		}
	}
	if dirs, _ := filepath.Glob(filepath.Join(dir, "top", "country=*")); len(dirs) != len(revenue) {
		t.Errorf("it saves %v", dirs)
	}
	t.Run("DuckDB", func(t *testing.T) {
		if got := python(t, dir, topInDuckDB); got != "True 12" {
			t.Errorf("DuckDB: %s", got)
		}
	})
}

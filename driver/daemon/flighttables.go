package daemon

import (
	"context"
	"encoding/json"
	"path/filepath"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/flight"
	"github.com/volley-engine/volley/storage/arrowstream"
)

// jobColumns are those of the table of jobs.
var jobColumns = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.BinaryTypes.String}, {Name: "job", Type: arrow.BinaryTypes.String},
	{Name: "owner", Type: arrow.BinaryTypes.String}, {Name: "state", Type: arrow.BinaryTypes.String},
	{Name: "why", Type: arrow.BinaryTypes.String}, {Name: "pool", Type: arrow.BinaryTypes.String},
	{Name: "args", Type: arrow.BinaryTypes.String}, {Name: "result", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "step", Type: arrow.PrimitiveTypes.Int64}, {Name: "restarts", Type: arrow.PrimitiveTypes.Int64},
	{Name: "submitted", Type: arrow.FixedWidthTypes.Timestamp_us},
	{Name: "ended", Type: arrow.FixedWidthTypes.Timestamp_us, Nullable: true},
	{Name: "iteration", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "objective", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
}, nil)

// jobs returns the table of jobs, a row for each.
func (c catalog) jobs() flight.Flight {
	return flight.Flight{Path: []string{jobsPath}, Rows: -1, Bytes: -1,
		Make: func(_ context.Context, _ func(), yield func(arrowstream.Message) error) error {
			rows, err := arrowstream.NewRows(jobColumns, yield)
			if err != nil {
				return err
			}
			for _, w := range c.d.jobs.shown() {
				size := addJob(rows, ViewJob(w.described()))
				if err := rows.Added(size); err != nil {
					return err
				}
			}
			return rows.Flush()
		}}
}

// addJob adds a job to its table, and returns about how many bytes it takes.
func addJob(rows *arrowstream.Rows, v JobView) (size int) {
	args, _ := json.Marshal(v.Args) // texts
	for i, text := range []string{v.ID, v.Job, v.Owner, v.State, v.Why, v.Pool, string(args)} {
		rows.Text(i).Append(text)
		size += len(text)
	}
	if len(v.Result) > 0 {
		rows.Text(7).Append(string(v.Result))
	} else {
		rows.Text(7).AppendNull()
	}
	rows.Field(8).(*array.Int64Builder).Append(int64(v.Step))
	rows.Field(9).(*array.Int64Builder).Append(int64(v.Restarts))
	appendTime(rows, 10, &v.Submitted)
	appendTime(rows, 11, v.Ended)
	if iteration := rows.Field(12).(*array.Int64Builder); v.Iteration != nil {
		iteration.Append(int64(*v.Iteration))
	} else {
		iteration.AppendNull()
	}
	if objective := rows.Field(13).(*array.Float64Builder); v.Objective != nil {
		objective.Append(*v.Objective)
	} else {
		objective.AppendNull()
	}
	return size + len(v.Result)
}

func appendTime(rows *arrowstream.Rows, column int, at *time.Time) {
	b := rows.Field(column).(*array.TimestampBuilder)
	if at == nil {
		b.AppendNull()
		return
	}
	b.Append(arrow.Timestamp(at.UnixMicro()))
}

// executorColumns are those of the table of executors.
var executorColumns = arrow.NewSchema([]arrow.Field{
	{Name: "name", Type: arrow.BinaryTypes.String}, {Name: "state", Type: arrow.BinaryTypes.String},
	{Name: "why", Type: arrow.BinaryTypes.String}, {Name: "version", Type: arrow.BinaryTypes.String},
	{Name: "labels", Type: arrow.BinaryTypes.String},
	{Name: "slots", Type: arrow.PrimitiveTypes.Int64}, {Name: "splits", Type: arrow.PrimitiveTypes.Int64},
	{Name: "memory", Type: arrow.PrimitiveTypes.Int64}, {Name: "disk", Type: arrow.PrimitiveTypes.Int64},
	{Name: "rows_per_second", Type: arrow.PrimitiveTypes.Float64},
	{Name: "since", Type: arrow.FixedWidthTypes.Timestamp_us},
}, nil)

// executors returns the table of executors, a row for each.
func (c catalog) executors() flight.Flight {
	return flight.Flight{Path: []string{executorsPath}, Rows: -1, Bytes: -1,
		Make: func(_ context.Context, _ func(), yield func(arrowstream.Message) error) error {
			rows, err := arrowstream.NewRows(executorColumns, yield)
			if err != nil {
				return err
			}
			for _, v := range c.d.executorViews() {
				addExecutor(rows, v)
				if err := rows.Added(100); err != nil {
					return err
				}
			}
			return rows.Flush()
		}}
}

func addExecutor(rows *arrowstream.Rows, v ExecutorView) {
	if v.Labels == nil {
		v.Labels = map[string]string{}
	}
	labels, _ := json.Marshal(v.Labels) // texts
	for i, text := range []string{v.Name, v.State, v.Why, v.Version, string(labels)} {
		rows.Text(i).Append(text)
	}
	for i, n := range []uint64{uint64(v.Slots), v.Splits, v.Memory, v.Disk} {
		rows.Field(5 + i).(*array.Int64Builder).Append(int64(n))
	}
	rows.Field(9).(*array.Float64Builder).Append(v.RowsPerSecond)
	appendTime(rows, 10, &v.Since)
}

// events returns a job's event log as a table, as far as it goes.
func (c catalog) events(w *jobHandle) flight.Flight {
	return flight.Flight{Path: []string{jobsPath, w.info.Id, eventsPath}, Rows: -1, Bytes: -1,
		Make: func(ctx context.Context, _ func(), yield func(arrowstream.Message) error) error {
			done, err := w.read()
			if err != nil {
				return err
			}
			defer done()
			if err := w.heal(ctx, driver.EventsName, w.made()); err != nil {
				return err
			}
			return flight.Events(ctx, filepath.Join(w.dir, driver.EventsName), yield)
		}}
}

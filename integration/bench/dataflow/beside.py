"""beside.py JOB SYSTEM DATA OUT: window, secondary and semijoin in DuckDB or Polars, as this program runs them.

Prints what the jobs of PEERS/dataflow print: seconds from files to result, and the result. Two threads."""
import json, os, sys, time

job, system, data, out = sys.argv[1:5]
os.environ["POLARS_MAX_THREADS"] = "2"
fmt = lambda r: " ".join(f"{x:.6f}" if isinstance(x, float) else str(int(x)) for x in r)


def duckdb_job():
    import duckdb
    db = duckdb.connect(config={"threads": 2})
    began = time.monotonic()
    if job == "window":
        r = db.execute(f"""SELECT sum(ranked), count(*), sum(below), sum(below * (key & 63)) FROM (
            SELECT key, rank() OVER w AS ranked, coalesce(lag(value) OVER w - value, 0) AS below
            FROM '{data}/kv.parquet' WINDOW w AS (PARTITION BY key ORDER BY value DESC))""").fetchone()
    elif job == "semijoin":
        r = (0, *db.execute(f"""SELECT count(*), sum(value), sum(value * (key & 63)) FROM '{data}/fact.parquet'
            SEMI JOIN (SELECT key FROM '{data}/dim.parquet' WHERE name < 'n') USING (key)""").fetchone())
    else:
        db.execute(f"""COPY (SELECT printf('%d,%.10f', key, value) FROM '{data}/kv.parquet' ORDER BY key, value DESC)
            TO '{out}' (FORMAT csv, HEADER false, QUOTE '', ESCAPE '', DELIMITER '\x01')""")
        r = None
    return time.monotonic() - began, r


def polars_job():
    import polars as pl
    began, value = time.monotonic(), pl.col("value")
    if job == "window":
        ordered = pl.scan_parquet(f"{data}/kv.parquet").sort(["key", "value"], descending=[False, True])
        ranked = ordered.with_columns(ranked=value.rank("min", descending=True).over("key"),
                                      below=(value.shift(1).over("key") - value).fill_null(0))
        r = ranked.select(pl.col("ranked").cast(pl.Int64).sum(), pl.len(), pl.col("below").sum(),
                          tied=(pl.col("below") * (pl.col("key") & 63)).sum()).collect(engine="streaming").row(0)
    elif job == "semijoin":
        early = pl.scan_parquet(f"{data}/dim.parquet").filter(pl.col("name") < "n")
        kept = pl.scan_parquet(f"{data}/fact.parquet").join(early, on="key", how="semi")
        r = (0, *kept.select(pl.len(), value.sum(), tied=(value * (pl.col("key") & 63)).sum()).collect(engine="streaming").row(0))
    else:
        pl.scan_parquet(f"{data}/kv.parquet").sort(["key", "value"], descending=[False, True]).sink_csv(
            out, include_header=False, float_precision=10)
        r = None
    return time.monotonic() - began, r


took, r = duckdb_job() if system == "duckdb" else polars_job()
print("RESULT " + json.dumps({"work_s": round(took, 3), "result_check": fmt(r) if r else "output"}))

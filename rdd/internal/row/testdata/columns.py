"""Writes columns.json: what pyarrow reads from the first rows of each column of arrow-testing's and parquet-testing's
files, for TestColumnsOfOtherWriters. Run it as

    python3 rdd/internal/row/testdata/columns.py DATA > rdd/internal/row/testdata/columns.json

where DATA has the directories parquet-testing and arrow-testing. Made with pyarrow 26."""
import glob, json, os, sys

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

ROWS = 8


def kind(t):
    if pa.types.is_dictionary(t):
        return kind(t.value_type)
    for is_kind, name in ((pa.types.is_boolean, "bool"), (pa.types.is_integer, "whole"), (pa.types.is_floating, "float"),
                          (pa.types.is_decimal, "decimal"), (pa.types.is_timestamp, "time"), (pa.types.is_date, "time"),
                          (pa.types.is_time, "duration"), (pa.types.is_duration, "duration"),
                          (pa.types.is_fixed_size_binary, "fixed")):
        if is_kind(t):
            return name
    if t in (pa.string(), pa.large_string(), pa.string_view()):
        return "text"
    if t in (pa.binary(), pa.large_binary(), pa.binary_view()):
        return "bytes"
    if (pa.types.is_list(t) or pa.types.is_large_list(t)) and kind(t.value_type) in ("whole", "text", "float"):
        return "list of " + kind(t.value_type)
    return str(t)


PER = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def text(v, t):
    """A value as the Go test writes it."""
    if pa.types.is_dictionary(t):
        t = t.value_type
    if v is None or not v.is_valid or v.as_py() is None:
        return None
    k = kind(t)
    if k == "fixed" or k == "bytes":
        return v.as_py().hex()
    if k == "time":
        if t == pa.date32():
            return str(v.value * 86400 * 10**9)
        if t == pa.date64():
            return str(v.value * 10**6)
        return str(v.value * PER[t.unit])
    if k == "duration":
        return str(v.value * PER[t.unit])
    if k == "float":
        return repr(float(v.as_py()))
    if k == "bool":
        return str(v.as_py()).lower()
    if k.startswith("list of"):
        return json.dumps([str(x) if k != "list of float" else repr(float(x)) for x in v.as_py()], ensure_ascii=False)
    if k == "decimal":
        return format(v.as_py(), "f")
    return str(v.as_py())


def columns(table):
    out = {}
    for i, f in enumerate(table.schema):
        c = {"kind": kind(f.type), "type": str(f.type)[:60]}
        if c["kind"] in ("whole", "float", "decimal", "time", "duration", "fixed", "text", "bytes", "bool") or \
                c["kind"].startswith("list of"):
            try:
                c["first"] = [text(v, f.type) for v in table.column(i).slice(0, ROWS)]
            except Exception as e:
                c["failed"] = str(e)[:80]
        out[f.name] = c
    return out


def main(root):
    out = {}
    for path in sorted(glob.glob(root + "/parquet-testing/data/*.parquet") +
                       glob.glob(root + "/arrow-testing/**/*.arrow_file", recursive=True) +
                       glob.glob(root + "/arrow-testing/**/*.stream", recursive=True)):
        name = os.path.relpath(path, root)
        try:
            if path.endswith(".parquet"):
                t = pq.read_table(path)
            elif path.endswith("_file"):
                t = ipc.open_file(path).read_all()
            else:
                t = ipc.open_stream(path).read_all()
            out[name] = {"rows": t.num_rows, "columns": columns(t)}
        except Exception as e:
            out[name] = {"failed": str(e)[:120]}
    print("{" + ",\n".join(json.dumps(name) + ": " + json.dumps(out[name], sort_keys=True) for name in sorted(out)) + "}")


main(sys.argv[1])

"""Saves numbers through a driver, and reads them beside a plain copy over TCP of the same files; needs pyarrow.

    arrow.py save DRIVER NAME GB ROWS         saves a dataset of batches of some rows, of 32 bytes each
    arrow.py flight DRIVER NAME kept|dropped
    arrow.py copy DIR kept|dropped            the files of a directory, from a second process, into memory
    prints seconds and bytes
"""

import os
import socket
import sys
import time


def save(driver, name, gb, batch):
    import numpy as np
    import pyarrow as pa
    import pyarrow.flight as flight

    rows = int(float(gb) * 1e9) // 32
    table = pa.table({name: np.random.rand(rows) for name in "abcd"})
    client = flight.connect(driver)
    began = time.perf_counter()
    writer, answer = client.do_put(flight.FlightDescriptor.for_path("datasets", name), table.schema)
    writer.write_table(table, max_chunksize=int(batch))
    writer.done_writing()
    answer.read()
    writer.close()
    return time.perf_counter() - began, table.nbytes


def read(driver, name, how):
    import pyarrow.flight as flight

    client = flight.connect(driver)
    began = time.perf_counter()
    info = client.get_flight_info(flight.FlightDescriptor.for_path("datasets", name))
    total, kept = 0, []
    for end in info.endpoints:
        stream = client.do_get(end.ticket)
        if how == "kept":
            kept.append(stream.read_all())
            total += kept[-1].nbytes
        else:
            total += sum(chunk.data.nbytes for chunk in stream)
    return time.perf_counter() - began, total


def copy(directory, how):
    parts = sorted(os.path.join(directory, n) for n in os.listdir(directory) if n.startswith("part-"))
    size = sum(os.path.getsize(p) for p in parts)
    listener = socket.create_server(("127.0.0.1", 0))
    if os.fork() == 0:
        to, _ = listener.accept()
        for path in parts:
            with open(path, "rb") as f:
                to.sendfile(f)
        to.close()
        os._exit(0)
    piece = 1 << 20
    began = time.perf_counter()
    got = socket.create_connection(listener.getsockname())
    total, room = 0, memoryview(bytearray(size if how == "kept" else piece))
    while True:
        at = total if how == "kept" else 0
        n = got.recv_into(room[at : at + piece]) if at < size else 0
        if n == 0:
            break
        total += n
    return time.perf_counter() - began, total


if __name__ == "__main__":
    do = {"save": save, "flight": read, "copy": copy}[sys.argv[1]]
    print(*do(*sys.argv[2:]))

"""Reads and saves a cluster's tables by Arrow Flight: needs pyarrow alone.

    python3 read.py unix:/home/me/.volley/driver.sock
    python3 read.py HOST:PORT ~/.volley/clusters/NAME datasets/visits
"""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.flight as flight


class Cluster:
    """A cluster, by its driver's address; over TLS with a directory of ca.crt, tls.crt and tls.key."""

    def __init__(self, driver, certificates=None):
        self.certificates = certificates and os.path.expanduser(certificates)
        if driver.startswith("unix:"):
            self.driver = self.dial("grpc+unix://" + driver.removeprefix("unix:"))
        else:
            self.driver = self.dial("grpc+tls://" + driver)

    def dial(self, location, name=None):
        if location.startswith("grpc+unix:"):
            return flight.connect(location)
        own = {}
        for key, file in (("tls_root_certs", "ca.crt"), ("cert_chain", "tls.crt"), ("private_key", "tls.key")):
            with open(os.path.join(self.certificates, file), "rb") as f:
                own[key] = f.read()
        return flight.connect(location, override_hostname=name, **own)

    def tables(self, below=""):
        """The paths of what may be read, with their rows; -1 where that is not known."""
        for info in self.driver.list_flights(below.encode()):
            yield "/".join(p.decode() for p in info.descriptor.path), info.total_records

    def read(self, path):
        """A table, whose parts are read side by side where they are served."""
        info = self.driver.get_flight_info(flight.FlightDescriptor.for_command(path))
        with ThreadPoolExecutor(8) as pool:
            parts = list(pool.map(self.part, info.endpoints))
        return pa.concat_tables(parts) if parts else info.schema.empty_table()

    def part(self, end):
        if end.locations:
            name = json.loads(end.app_metadata or b"{}").get("server_name")
            try:
                with self.dial(end.locations[0].uri.decode(), name) as executor:
                    return executor.do_get(end.ticket).read_all()
            except flight.FlightUnavailableError:
                pass  # the driver serves it, too
        return self.driver.do_get(end.ticket).read_all()

    def save(self, name, table, overwrite=False):
        """Saves a dataset, and returns how many rows it has once all of it is there."""
        options = flight.FlightCallOptions(headers=[
            (b"volley-overwrite", b"true" if overwrite else b"false"),
            (b"volley-rows", str(table.num_rows).encode()),  # so that a part of them is never taken for all
        ])
        writer, answer = self.driver.do_put(flight.FlightDescriptor.for_path("datasets", name), table.schema, options)
        writer.write_table(table)
        writer.done_writing()
        rows = json.loads(answer.read().to_pybytes())["rows"]
        writer.close()
        return rows


if __name__ == "__main__":
    cluster = Cluster(sys.argv[1], sys.argv[2] if len(sys.argv) > 3 else None)
    if len(sys.argv) > 2:
        print(cluster.read(sys.argv[-1]))
    else:
        for path, rows in cluster.tables():
            print(path, rows)

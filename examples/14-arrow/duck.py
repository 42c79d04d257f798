"""Asks a cluster's table a question in SQL: DuckDB reads what pyarrow has read.

    python3 duck.py unix:/home/me/.volley/driver.sock jobs 'select state, count(*) from t group by state'
"""

import sys

import duckdb

from read import Cluster

t = Cluster(sys.argv[1]).read(sys.argv[2])
print(duckdb.sql(sys.argv[3]).fetchall())

// Package traces tells a collector of OpenTelemetry (OTLP over HTTP) how jobs go: a trace a job, a span a step.
//
// It must hold up no job: what the collector does not take in time is dropped, and counted.
package traces

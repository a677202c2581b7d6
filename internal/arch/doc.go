// Package arch holds the layers of pawl against its source: which packages
// there are, what each may import, and which may touch the clock, processes
// and the database. It consists of tests; the table is in table_test.go.
//
// It reads source and decides from that alone. It never builds, loads or runs
// what it judges, so it also sees the files of other platforms.
package arch

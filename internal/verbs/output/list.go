package output

import "github.com/pawl-run/pawl/internal/verbs/shape"

// List is a listing: a table for people, {data, meta} for programs. Every list
// of a command goes through Print.
type List[T any] struct {
	Schema  string           // of the JSON, like pawl.runs/v1
	Heading []string         // of the columns
	Cells   func(T) []string // one row, as many cells as the heading has
	Empty   string           // printed if there are no rows; empty: only the heading is printed
	Below   func()           // prints what follows a table; may be nil
}

// WriteListing prints a listing as JSON.
func WriteListing[T any](p *Printer, schema string, rows []T) error {
	return p.WriteJSON(shape.ListingOf(schema, rows))
}

// Print prints the rows in the form that the reader wants.
func (l List[T]) Print(p *Printer, rows []T) error {
	switch {
	case p.JSON:
		return WriteListing(p, l.Schema, rows)
	case len(rows) == 0 && l.Empty != "":
		p.Line("%s", l.Empty)
		return p.err
	}
	table := [][]string{l.Heading}
	for _, row := range rows {
		table = append(table, l.Cells(row))
	}
	if err := p.Table(table); err != nil {
		return err
	}
	if l.Below != nil {
		l.Below()
	}
	return p.err
}

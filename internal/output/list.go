package output

// List is a listing: a table for people, {data, meta} for programs. Every list
// of a command goes through Print.
type List[T any] struct {
	Schema  string           // of the JSON, like pawl.runs/v1
	Heading []string         // of the columns
	Cells   func(T) []string // one row, as many cells as the heading has
	Empty   string           // printed if there are no rows; empty: only the heading is printed
	Below   func()           // prints what follows a table; may be nil
}

// Print prints the rows in the form that the reader wants.
func (l List[T]) Print(p *Printer, rows []T) error {
	switch {
	case p.JSON:
		return p.WriteJSON(ListJSON(l.Schema, rows))
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

// JSONList is the JSON of every listing.
type JSONList struct {
	Data any      `json:"data"` // never null
	Meta ListMeta `json:"meta"`
}

// ListMeta says what a listing holds.
type ListMeta struct {
	Schema string `json:"schema"`
	Count  int    `json:"count"`
}

// ListJSON returns a listing as JSON has it.
func ListJSON[T any](schema string, rows []T) JSONList {
	if rows == nil {
		rows = []T{}
	}
	return JSONList{Data: rows, Meta: ListMeta{schema, len(rows)}}
}

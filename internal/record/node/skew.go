package node

import "time"

// MostSkew is the most that the clock of a host may differ from that of the database
// without a warning. More does no harm, because the database's clock decides, but it
// confuses whoever reads times on that host.
const MostSkew = 5 * time.Second

// DescribeSkew says by how much the clock of a host is ahead of that of the database.
func DescribeSkew(skew time.Duration) string {
	const exact = 100 * time.Millisecond
	switch skew = skew.Round(exact); {
	case skew < 0:
		return (-skew).String() + " behind the database"
	case skew > 0:
		return skew.String() + " ahead of the database"
	}
	return "as the database"
}

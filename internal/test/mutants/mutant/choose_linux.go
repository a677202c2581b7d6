package mutant

import (
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
)

// Limit is the number of the resource limit that carries the choice: bytes in
// message queues (RLIMIT_MSGQUEUE), which nothing in pawl uses.
const Limit = 12

// choose reads the limit. It returns the mutant that is on, or the number of
// the record and the record itself.
func choose() (on, number int, notes *atomic.Pointer[record]) {
	notes = &atomic.Pointer[record]{}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(Limit, &limit); err != nil {
		return 0, 0, notes
	}
	switch {
	case limit.Cur < Capacity:
		on = int(limit.Cur)
	case limit.Cur >= recordFrom && limit.Cur < recordEnd:
		number = int(limit.Cur - recordFrom)
		notes.Store(open(number))
	}
	return on, number, notes
}

// move makes this process, and the children it starts from now on, note what
// they reach in another record.
func move(number int) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(Limit, &limit); err != nil {
		return
	}
	limit.Cur = RecordOf(number)
	if err := syscall.Setrlimit(Limit, &limit); err == nil {
		reached.Store(open(number))
	}
}

// open maps a record, so that a note is kept whatever ends the process. A
// process that does not see the file notes nothing.
func open(number int) *record {
	file, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(number)), os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	defer file.Close()
	mapped, err := syscall.Mmap(int(file.Fd()), 0, Capacity, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil
	}
	return (*record)(mapped)
}

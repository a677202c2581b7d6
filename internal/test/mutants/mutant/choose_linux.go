package mutant

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Limit is the number of the resource limit that carries the choice: bytes in
// message queues (RLIMIT_MSGQUEUE), which nothing in pawl uses.
const Limit = 12

func choose() (int, []byte) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(Limit, &limit); err != nil {
		return 0, nil
	}
	switch {
	case limit.Cur < Capacity:
		return int(limit.Cur), nil
	case limit.Cur >= recordFrom && limit.Cur < recordEnd:
		return 0, open(filepath.Join(dir, strconv.FormatUint(limit.Cur-recordFrom, 10)))
	}
	return 0, nil
}

// open maps a record, so that a note is kept whatever ends the process. A
// process that does not see the file notes nothing.
func open(name string) []byte {
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	defer file.Close()
	mapped, err := syscall.Mmap(int(file.Fd()), 0, Capacity, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil
	}
	return mapped
}

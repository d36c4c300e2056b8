package main

import (
	"errors"
	"io"
	"os"
)

// disk is a file or block device that keeps the data of a namespace.
type disk struct {
	*os.File
	size int64
}

// openDisk opens a file, which it creates if there is none, and gives it a size
// in bytes; 0: it keeps the one that it has.
func openDisk(name string, bytes int64) (*disk, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	end, err := f.Seek(0, io.SeekEnd)
	switch {
	case err != nil:
	case bytes == 0 && end == 0:
		err = errors.New(name + " is empty")
	case bytes == 0:
		bytes = end
	case end < bytes:
		err = f.Truncate(bytes)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &disk{f, bytes}, nil
}

// Size implements pcietest.Backend.
func (d *disk) Size() int64 { return d.size }

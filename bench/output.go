package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// output is a file that results go to. It is opened before the measurement,
// so that a bad name costs no time, and not touched before there are results.
type output struct {
	*os.File
	fresh bool // it was not there before
}

func openOutput(name string) (*output, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err == nil {
		return &output{f, true}, nil
	}
	if !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	f, err = os.OpenFile(name, os.O_WRONLY, 0)
	return &output{f, false}, err
}

// replace writes the contents and closes the file.
func (o *output) replace(b []byte) error {
	st, err := o.Stat()
	if err == nil && st.Mode().IsRegular() {
		err = o.Truncate(0)
	}
	if err == nil {
		_, err = o.Write(b)
	}
	o.fresh = false
	return errors.Join(err, o.Close())
}

// abandon closes the file if it was not written, and removes it if it was not
// there before.
func (o *output) abandon() {
	_ = o.Close()
	if o.fresh {
		_ = os.Remove(o.Name())
	}
}

// jsonFile is where the document goes, if anywhere.
type jsonFile struct {
	w    io.Writer
	file *output
}

func openJSON(name string, stdout io.Writer) (*jsonFile, error) {
	switch name {
	case "":
		return &jsonFile{}, nil
	case "-":
		return &jsonFile{w: stdout}, nil
	}
	f, err := openOutput(name)
	if err != nil {
		return nil, usagef("-json: %v: give a file that can be written, or - for standard output", err)
	}
	return &jsonFile{file: f}, nil
}

func (j *jsonFile) write(v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	b = append(b, '\n')
	switch {
	case err != nil:
	case j.w != nil:
		_, err = j.w.Write(b)
	case j.file != nil:
		err = j.file.replace(b)
	}
	if err != nil {
		return fmt.Errorf("-json: %w", err)
	}
	return nil
}

// discard is for when nothing came of it; after write it does nothing.
func (j *jsonFile) discard() {
	if j.file != nil {
		j.file.abandon()
	}
}

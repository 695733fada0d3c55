package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
)

// A saved filter is its header's geometry, the string and a checksum.
const (
	savedHead = len(savedMagic) + 16
	savedSum  = 8
)

// keepsBackup refuses to write the saved filter in a new file over one that holds
// more.
func keepsBackup(newer, older string) error {
	lacks, err := lacksBits(newer, older)
	if err == nil && lacks {
		err = usagef("%s holds another filter, or items that this one has lost, and was left as it is: name"+
			" another file, or use --force", printable(older))
	}
	return err
}

// lacksBits reports whether the saved filter in one file has bits that the one
// in the other lacks. A filter only gains bits: the other is then another
// filter, or one that was lost and made again. A file that is no whole saved
// filter has none.
func lacksBits(newer, older string) (bool, error) {
	now, err := os.Open(newer)
	if err != nil {
		return false, err
	}
	defer now.Close()
	was, err := os.Open(older)
	if err != nil {
		return false, nil // as a rule there is none
	}
	defer was.Close()
	a, b := bufio.NewReaderSize(was, 1<<16), bufio.NewReaderSize(now, 1<<16)
	head, other := make([]byte, savedHead), make([]byte, savedHead)
	if _, err := io.ReadFull(b, other); err != nil {
		return false, err
	}
	if _, err := io.ReadFull(a, head); err != nil || string(head[:len(savedMagic)]) != savedMagic {
		return false, nil
	}
	if !bytes.Equal(head, other) {
		return true, nil
	}
	info, err := now.Stat()
	if err != nil {
		return false, err
	}
	for left := info.Size() - int64(savedHead+savedSum); left > 0; left-- {
		x, err := a.ReadByte()
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		y, newErr := b.ReadByte()
		if err = errors.Join(err, newErr); err != nil {
			return false, err
		}
		if x&^y != 0 {
			return true, nil
		}
	}
	return false, nil
}

package upstash

import (
	"errors"
	"strings"
	"testing"
)

func TestDecodeSaysWhatToUse(t *testing.T) {
	var v any
	err := jsonReply(`"{}"`).Decode(&v)
	if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "encoding/json") {
		t.Errorf("got %v, want errors.ErrUnsupported and what to use", err)
	}
	if err := jsonReply("null").Decode(&v); err != ErrNil {
		t.Errorf("null: got %v, want ErrNil", err)
	}
}

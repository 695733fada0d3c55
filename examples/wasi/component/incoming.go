//go:build wasip1

package main

import (
	"encoding/binary"
	"time"
)

// answerTime is how long an answer may take to leave.
const answerTime = 5 * time.Second

// incoming is a request that came in.
type incoming struct{ fields uint32 }

// header returns the field's first value, or "".
func (r incoming) header(name string) string { return field(r.fields, name) }

// serve answers a request. The host calls it for one request after another; a
// host that serves two requests at once makes two instances.
//
//go:wasmexport wasi:http/incoming-handler@0.2.0#handle
func serve(request, outparam uint32) {
	fields := incomingHeaders(request)
	status, text := handle(incoming{fields})
	dropFields(fields)
	dropIncomingRequest(request)

	response := newOutgoingResponse(newFields())
	responseSetStatus(response, uint32(status))
	responseBody(response, ret())
	body := ret32(4)
	responseSet(outparam, 0, response, 0, 0, 0, 0, 0, 0)

	limit := &limit{clock: subscribeDuration(uint64(answerTime)), left: answerTime}
	defer limit.drop()
	// If this fails, the sender is gone, and there is nobody to tell.
	_ = writeBody(body, []byte(text), limit, 0)
}

// field returns the first value of a header field, or "".
func field(fields uint32, name string) string {
	list(func() { fieldsGet(fields, name, ret()) })
	if ret32(4) == 0 {
		return ""
	}
	first := listed(ret32(0), 8) // of a list of lists: an address and a length
	address, n := binary.LittleEndian.Uint32(first), binary.LittleEndian.Uint32(first[4:])
	return string(listed(address, n))
}

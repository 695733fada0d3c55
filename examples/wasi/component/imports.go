//go:build wasip1

package main

import "unsafe"

// The functions of wasi:http 0.2 and its relatives that this component calls,
// as the canonical ABI flattens them. A few rules explain every signature:
//
//   - A resource handle is an i32. Whoever holds an own<T> drops it once; a
//     child (stream, pollable) goes before its parent (body, future).
//   - A string or list is a pointer and a length. option<T> is an i32, 1 for
//     "some", and then T's own values.
//   - A result<_, _> without payload comes back as an i32, 0 for ok. If any
//     other result needs more than one value, it is written to the address in
//     the last parameter, laid out as in C: the case's number first, its
//     payload at the next multiple of the payload's alignment.
//
// The version is part of every name: hosts accept any 0.2.x with the functions.

//go:wasmimport wasi:clocks/monotonic-clock@0.2.0 subscribe-duration
func subscribeDuration(nanos uint64) (pollable uint32)

//go:wasmimport wasi:io/poll@0.2.0 poll
func pollList(list unsafe.Pointer, n uint32, ret unsafe.Pointer)

//go:wasmimport wasi:io/poll@0.2.0 [method]pollable.ready
func pollableReady(self uint32) uint32

//go:wasmimport wasi:io/poll@0.2.0 [resource-drop]pollable
func dropPollable(self uint32)

//go:wasmimport wasi:io/error@0.2.0 [resource-drop]error
func dropIOError(self uint32)

//go:wasmimport wasi:io/streams@0.2.0 [method]output-stream.check-write
func outputCheckWrite(self uint32, ret unsafe.Pointer)

//go:wasmimport wasi:io/streams@0.2.0 [method]output-stream.write
func outputWrite(self uint32, data unsafe.Pointer, n uint32, ret unsafe.Pointer)

//go:wasmimport wasi:io/streams@0.2.0 [method]output-stream.flush
func outputFlush(self uint32, ret unsafe.Pointer)

//go:wasmimport wasi:io/streams@0.2.0 [method]output-stream.subscribe
func outputSubscribe(self uint32) (pollable uint32)

//go:wasmimport wasi:io/streams@0.2.0 [resource-drop]output-stream
func dropOutputStream(self uint32)

//go:wasmimport wasi:io/streams@0.2.0 [method]input-stream.read
func inputRead(self uint32, n uint64, ret unsafe.Pointer)

//go:wasmimport wasi:io/streams@0.2.0 [method]input-stream.subscribe
func inputSubscribe(self uint32) (pollable uint32)

//go:wasmimport wasi:io/streams@0.2.0 [resource-drop]input-stream
func dropInputStream(self uint32)

//go:wasmimport wasi:http/types@0.2.0 [constructor]fields
func newFields() (fields uint32)

//go:wasmimport wasi:http/types@0.2.0 [method]fields.append
func fieldsAppend(self uint32, name string, value unsafe.Pointer, n uint32, ret unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.0 [method]fields.get
func fieldsGet(self uint32, name string, ret unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.0 [resource-drop]fields
func dropFields(self uint32)

//go:wasmimport wasi:http/types@0.2.0 [constructor]outgoing-request
func newOutgoingRequest(fields uint32) (request uint32)

//go:wasmimport wasi:http/types@0.2.0 [method]outgoing-request.set-method
func requestSetMethod(self, method uint32, other string) uint32

//go:wasmimport wasi:http/types@0.2.0 [method]outgoing-request.set-scheme
func requestSetScheme(self, some, scheme uint32, other string) uint32

//go:wasmimport wasi:http/types@0.2.0 [method]outgoing-request.set-authority
func requestSetAuthority(self, some uint32, authority string) uint32

//go:wasmimport wasi:http/types@0.2.0 [method]outgoing-request.set-path-with-query
func requestSetPath(self, some uint32, path string) uint32

//go:wasmimport wasi:http/types@0.2.0 [method]outgoing-request.body
func requestBody(self uint32, ret unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.0 [resource-drop]outgoing-request
func dropOutgoingRequest(self uint32)

//go:wasmimport wasi:http/types@0.2.0 [constructor]request-options
func newRequestOptions() (options uint32)

//go:wasmimport wasi:http/types@0.2.0 [method]request-options.set-connect-timeout
func optionsSetConnectTimeout(self, some uint32, nanos uint64) uint32

//go:wasmimport wasi:http/types@0.2.0 [method]request-options.set-first-byte-timeout
func optionsSetFirstByteTimeout(self, some uint32, nanos uint64) uint32

//go:wasmimport wasi:http/types@0.2.0 [method]request-options.set-between-bytes-timeout
func optionsSetBetweenBytesTimeout(self, some uint32, nanos uint64) uint32

//go:wasmimport wasi:http/types@0.2.0 [method]outgoing-body.write
func bodyWrite(self uint32, ret unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.0 [static]outgoing-body.finish
func bodyFinish(body, some, trailers uint32, ret unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.0 [resource-drop]outgoing-body
func dropOutgoingBody(self uint32)

//go:wasmimport wasi:http/outgoing-handler@0.2.0 handle
func handleOutgoing(request, some, options uint32, ret unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.0 [method]future-incoming-response.subscribe
func futureSubscribe(self uint32) (pollable uint32)

//go:wasmimport wasi:http/types@0.2.0 [method]future-incoming-response.get
func futureGet(self uint32, ret unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.0 [resource-drop]future-incoming-response
func dropFuture(self uint32)

//go:wasmimport wasi:http/types@0.2.0 [method]incoming-response.status
func responseStatus(self uint32) uint32

//go:wasmimport wasi:http/types@0.2.0 [method]incoming-response.headers
func responseHeaders(self uint32) (fields uint32)

//go:wasmimport wasi:http/types@0.2.0 [method]incoming-response.consume
func responseConsume(self uint32, ret unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.0 [resource-drop]incoming-response
func dropIncomingResponse(self uint32)

//go:wasmimport wasi:http/types@0.2.0 [method]incoming-body.stream
func bodyStream(self uint32, ret unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.0 [resource-drop]incoming-body
func dropIncomingBody(self uint32)

//go:wasmimport wasi:http/types@0.2.0 [method]incoming-request.headers
func incomingHeaders(self uint32) (fields uint32)

//go:wasmimport wasi:http/types@0.2.0 [resource-drop]incoming-request
func dropIncomingRequest(self uint32)

//go:wasmimport wasi:http/types@0.2.0 [constructor]outgoing-response
func newOutgoingResponse(fields uint32) (response uint32)

//go:wasmimport wasi:http/types@0.2.0 [method]outgoing-response.set-status-code
func responseSetStatus(self, status uint32) uint32

//go:wasmimport wasi:http/types@0.2.0 [method]outgoing-response.body
func responseBody(self uint32, ret unsafe.Pointer)

// responseSet's values after response belong to the error-code that it could
// carry instead; a response leaves them 0.
//
//go:wasmimport wasi:http/types@0.2.0 [static]response-outparam.set
func responseSet(outparam, isErr, response, e1 uint32, e2 uint64, e3, e4, e5, e6 uint32)

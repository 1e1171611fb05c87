// The same as ../agent.c, in Go by cgo.
//
//	go run agent.go
package main

// #cgo pkg-config: cordon
// #include <cordon.h>
// #include <poll.h>
// #include <stdlib.h>
// static int await(int fd) { struct pollfd ready = { fd, POLLIN, 0 }; return poll(&ready, 1, -1); }
import "C"

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"unsafe"
)

var failure = C.cordon_error_new()

func must(result C.int) {
	if result < 0 {
		name := C.CString("reason")
		defer C.free(unsafe.Pointer(name))
		log.Fatal(C.GoString(C.cordon_error_text(failure, name)))
	}
}

type object = map[string]any

func take(value *C.struct_cordon_value) object {
	path := C.CString("")
	defer C.free(unsafe.Pointer(path))
	text := C.cordon_value_json(value, path)
	defer C.free(unsafe.Pointer(text))
	var told object
	if err := json.Unmarshal([]byte(C.GoString(text)), &told); err != nil {
		log.Fatal(err)
	}
	C.cordon_value_unref(value)
	return told
}

func call(cordon *C.struct_cordon, method string, params object) object {
	encoded, err := json.Marshal(params)
	if err != nil {
		log.Fatal(err)
	}
	name, text := C.CString(method), C.CString(string(encoded))
	defer C.free(unsafe.Pointer(name))
	defer C.free(unsafe.Pointer(text))
	var value *C.struct_cordon_value
	must(C.cordon_call(cordon, name, text, &value, failure))
	return take(value)
}

func follow(cordon *C.struct_cordon, line string, settings object) {
	settings["session"], settings["ask"] = "agent-go", true
	id := call(cordon, "process.start", object{"argv": []string{"sh", "-c", line}, "environment": []string{"PATH=" + os.Getenv("PATH")},
		"settings": settings})["id"].(string)
	text := C.CString(id)
	defer C.free(unsafe.Pointer(text))
	var process *C.struct_cordon_process
	must(C.cordon_process_attach(cordon, text, 0, 0, &process, failure))
	defer C.cordon_process_unref(process)
	for {
		var value *C.struct_cordon_value
		must(C.cordon_process_next(process, &value, failure))
		if value == nil {
			C.await(C.cordon_process_fd(process))
			continue
		}
		event := take(value)
		switch event["event"] {
		case "asks":
			call(cordon, "approvals.answer", object{"card": event["card"], "hash": event["hash"], "answer": "once"})
		case "output":
			if event["data"] == "sleeping\n" {
				call(cordon, "process.cancel", object{"id": id, "grace_ms": 2000})
			} else {
				fmt.Print(event["data"])
			}
		case "ended":
			if by := event["result"].(object)["ended_by"]; by != "exit" {
				fmt.Println(by)
			}
			return
		}
	}
}

func main() {
	var cordon *C.struct_cordon
	must(C.cordon_open(nil, &cordon, failure))
	follow(cordon, "echo ran", object{"read": "/var/tmp"})
	follow(cordon, "echo sleeping; exec sleep 1000", object{})
	C.cordon_unref(cordon)
}

// Reads texts as kubectl reads files: with its decoder, and its loop over documents. One JSON list of texts on standard
// input; for each text, on standard output, its documents as JSON and the error that ended it.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log"
	"os"
	"strings"

	goyaml "go.yaml.in/yaml/v2"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

type reading struct {
	Documents []json.RawMessage `json:"documents"`
	Error     string            `json:"error,omitempty"`
	// Something stands behind a document, and is dropped without a word.
	Dropped bool `json:"dropped,omitempty"`
}

func main() {
	var texts []string
	if err := json.NewDecoder(os.Stdin).Decode(&texts); err != nil {
		log.Fatal(err)
	}
	readings := make([]reading, len(texts))
	for i, text := range texts {
		readings[i] = read(text)
	}
	if err := json.NewEncoder(os.Stdout).Encode(readings); err != nil {
		log.Fatal(err)
	}
}

// As the StreamVisitor of k8s.io/cli-runtime does it.
func read(text string) reading {
	result := reading{Documents: []json.RawMessage{}, Dropped: drops(text)}
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		document := runtime.RawExtension{}
		if err := decoder.Decode(&document); err != nil {
			if !errors.Is(err, io.EOF) {
				result.Error = err.Error()
			}
			return result
		}
		raw := bytes.TrimSpace(document.Raw)
		if len(raw) != 0 && !bytes.Equal(raw, []byte("null")) {
			result.Documents = append(result.Documents, raw)
		}
	}
}

func drops(text string) bool {
	reader := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := reader.Read()
		if err != nil {
			return false
		}
		decoder := goyaml.NewDecoder(bytes.NewReader(document))
		var value any
		if decoder.Decode(&value) == nil && decoder.Decode(&value) != io.EOF {
			return true
		}
	}
}

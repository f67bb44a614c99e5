// Writes the descriptors of every v3 and v3alpha Envoy type, with everything that they import, as one FileDescriptorSet
// to standard output. Files are in dependency order and the encoding is deterministic: equal input, equal bytes.
package main

import (
	"log"
	"os"
	"regexp"
	"sort"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

var wanted = regexp.MustCompile(`^envoy/.*/v3(alpha)?/`)

func main() {
	var roots []string
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		if wanted.MatchString(file.Path()) {
			roots = append(roots, file.Path())
		}
		return true
	})
	sort.Strings(roots)

	set := &descriptorpb.FileDescriptorSet{}
	seen := map[string]bool{}
	var add func(file protoreflect.FileDescriptor)
	add = func(file protoreflect.FileDescriptor) {
		if seen[file.Path()] {
			return
		}
		seen[file.Path()] = true
		for i := 0; i < file.Imports().Len(); i++ {
			add(file.Imports().Get(i).FileDescriptor)
		}
		set.File = append(set.File, protodesc.ToFileDescriptorProto(file))
	}
	for _, path := range roots {
		file, err := protoregistry.GlobalFiles.FindFileByPath(path)
		if err != nil {
			log.Fatal(err)
		}
		add(file)
	}

	bytes, err := proto.MarshalOptions{Deterministic: true}.Marshal(set)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := os.Stdout.Write(bytes); err != nil {
		log.Fatal(err)
	}
}

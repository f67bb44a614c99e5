// Says of each object of a list, as JSON, what kstatus makes of its status: the library of Flux, helm and others.
package main

import (
	"encoding/json"
	"log"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

type verdict struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

func main() {
	var list unstructured.UnstructuredList
	// Its decoder tells whole numbers from others, as the library needs it.
	if err := json.NewDecoder(os.Stdin).Decode(&list); err != nil {
		log.Fatal(err)
	}
	verdicts := []verdict{}
	for _, object := range list.Items {
		result, err := status.Compute(&object)
		if err != nil {
			verdicts = append(verdicts, verdict{Status: "Error", Message: err.Error()})
			continue
		}
		verdicts = append(verdicts, verdict{Status: result.Status.String(), Message: result.Message})
	}
	if err := json.NewEncoder(os.Stdout).Encode(verdicts); err != nil {
		log.Fatal(err)
	}
}

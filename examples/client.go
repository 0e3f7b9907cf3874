// Push, pop, lease, acknowledge and follow a queue from Go: go run examples/client.go QUEUE
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

type item struct {
	ID    string `json:"id"`
	Value string `json:"value"`
	Lease string `json:"lease"`
}

type items struct {
	Items []item `json:"items"`
}

type results struct {
	Results []struct {
		Done bool `json:"done"`
	} `json:"results"`
}

// problem is a refusal (RFC 9457); its code is stable.
type problem struct {
	Status int    `json:"status"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

func (p *problem) Error() string { return fmt.Sprintf("%s: %s", p.Code, p.Detail) }

var api = os.Getenv("PQADMIN_SERVER") + "/api/v1"

// send sends one request with the token; a refusal is an error of type *problem.
func send(method, path, key string, body any) (*http.Response, error) {
	var content bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&content).Encode(body); err != nil {
			return nil, err
		}
	}
	request, err := http.NewRequest(method, api+path, &content)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("PQADMIN_TOKEN"))
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil || answer.StatusCode < 300 {
		return answer, err
	}
	defer answer.Body.Close()
	refused := &problem{}
	if err := json.NewDecoder(answer.Body).Decode(refused); err != nil {
		return nil, fmt.Errorf("%s", answer.Status)
	}
	return nil, refused
}

// call sends one request and decodes its answer.
func call[T any](path, key string, body any) T {
	var found T
	answer, err := send("POST", path, key, body)
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&found); err != nil {
		log.Fatal(err)
	}
	return found
}

// first returns the item of an answer; there is none when nothing came in time.
func first(found items) item {
	if len(found.Items) == 0 {
		log.Fatal("nothing was ready")
	}
	return found.Items[0]
}

func main() {
	queue := os.Args[1]
	path := "/queues/" + url.PathEscape(queue)
	key := fmt.Sprintf("image-7-%d", time.Now().UnixNano())

	// The same again under one key: one item.
	image := map[string]any{"value": "resize image 7", "priority": 5}
	pushed := first(call[items](path+"/items", key, image))
	again := first(call[items](path+"/items", key, image))
	fmt.Println("pushed", pushed.ID, "again", again.ID)

	// The item is gone with its answer, which the key gives again should it be lost.
	popped := first(call[items](path+"/pop?end=min&wait=10", "pop-"+key, nil))
	fmt.Println("popped", popped.ID, popped.Value)

	// Without the acknowledgement the item is ready again after 30 seconds.
	call[items](path+"/items", "", map[string]any{"value": "resize image 8", "priority": 5})
	held := first(call[items](path+"/lease?seconds=30&wait=10", "", nil))
	settled := call[results](path+"/ack", "", map[string]any{"leases": []string{held.Lease}})
	fmt.Println("acknowledged", held.Value, settled.Results[0].Done)

	// The first state of the queue; changes would follow.
	stream, err := send("GET", "/events?queues="+url.QueryEscape(queue), "", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer stream.Body.Close()
	lines := bufio.NewScanner(stream.Body)
	event := ""
	for lines.Scan() {
		name, text, _ := strings.Cut(lines.Text(), ": ")
		if name == "event" {
			event = text
		} else if name == "data" && event == "queue" {
			fmt.Println("event", event, text)
			return
		}
	}
	log.Fatal("the stream ended: ", lines.Err())
}

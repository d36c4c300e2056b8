package lab

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
)

// WriteCSV writes one line per scenario and contender, with all metrics, after a
// line of names.
func WriteCSV(w io.Writer, reports []*Report) error {
	c := csv.NewWriter(w)
	head := append([]string{"scenario", "policy", "ios"}, Metrics...)
	if err := c.Write(append(head, "split")); err != nil {
		return err
	}
	for _, r := range reports {
		for _, res := range r.Results {
			line := []string{res.Scenario, res.Contender, strconv.FormatInt(res.IOs, 10)}
			for _, m := range Metrics {
				line = append(line, strconv.FormatFloat(res.Metrics[m], 'g', 8, 64))
			}
			split := ""
			for i, n := range res.Split {
				if i > 0 {
					split += ":"
				}
				split += strconv.FormatInt(n, 10)
			}
			if err := c.Write(append(line, split)); err != nil {
				return err
			}
		}
	}
	c.Flush()
	return c.Error()
}

// Document is what [WriteJSON] writes of a scenario.
type Document struct {
	Name    string    `json:"name"`
	Title   string    `json:"title"`
	Figures []Figure  `json:"upstream,omitempty"`
	Results []*Result `json:"results"`
}

// WriteJSON writes an array of [Document], time series included.
func WriteJSON(w io.Writer, reports []*Report) error {
	docs := make([]Document, len(reports))
	for i, r := range reports {
		docs[i] = Document{Name: r.Scenario.Name, Title: r.Scenario.Title, Figures: r.Scenario.Figures, Results: r.Results}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	if err := e.Encode(docs); err != nil {
		return fmt.Errorf("lab: writing JSON: %w", err)
	}
	return nil
}

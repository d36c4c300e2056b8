package lab

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// Size of a plot, in pixels.
const (
	plotWidth  = 860
	plotHeight = 220
	plotLeft   = 70
	plotBottom = 30
)

// colours are told apart by those who see few, too.
var colours = []string{"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#000000", "#999999", "#f0e442"}

// plot is one diagram over time, with a curve per contender.
type plot struct {
	title string
	value func(*Bucket) float64
	log   bool
	lo    float64
	hi    float64
}

// WriteHTML writes a page with the plots of a scenario over time, one of
// throughput and one of latency, which refers to nothing outside of it.
func (r *Report) WriteHTML(w io.Writer) error {
	var b strings.Builder
	title := html.EscapeString(r.Scenario.Name + ": " + r.Scenario.Title)
	fmt.Fprintf(&b, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>%s</title></head>\n", title)
	fmt.Fprintf(&b, "<body style=\"font-family:sans-serif\"><h1 style=\"font-size:1.2em\">%s</h1>\n", title)
	for _, p := range []plot{
		{title: "I/Os per second", value: func(b *Bucket) float64 { return b.IOPS }},
		{title: "mean latency in us, logarithmic", value: func(b *Bucket) float64 { return b.Mean }, log: true},
		{title: "largest latency in us, logarithmic", value: func(b *Bucket) float64 { return b.Max }, log: true},
	} {
		r.draw(&b, p)
	}
	b.WriteString("<p>")
	for i, res := range r.Results {
		fmt.Fprintf(&b, "<span style=\"color:%s\">&#9632;</span> %s &nbsp; ", colour(i), html.EscapeString(res.Contender))
	}
	b.WriteString("</p>\n<pre>")
	var text strings.Builder
	if err := r.WriteText(&text); err != nil {
		return err
	}
	b.WriteString(html.EscapeString(text.String()))
	b.WriteString("</pre></body></html>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func colour(i int) string { return colours[i%len(colours)] }

// draw appends an SVG diagram.
func (r *Report) draw(b *strings.Builder, p plot) {
	p.lo, p.hi = math.Inf(1), 0
	for _, res := range r.Results {
		for i := range res.Series {
			if v := p.value(&res.Series[i]); v > 0 {
				p.lo, p.hi = math.Min(p.lo, v), math.Max(p.hi, v)
			}
		}
	}
	if p.hi == 0 {
		return
	}
	if !p.log {
		p.lo = 0
	}
	fmt.Fprintf(b, "<h2 style=\"font-size:1em\">%s</h2>\n", html.EscapeString(p.title))
	fmt.Fprintf(b, "<svg width=\"%d\" height=\"%d\" style=\"background:#fafafa\">\n", plotWidth+plotLeft+10, plotHeight+plotBottom+10)
	for i := range 5 {
		v := p.lo + (p.hi-p.lo)*float64(i)/4
		if p.log {
			v = p.lo * math.Pow(p.hi/p.lo, float64(i)/4)
		}
		y := p.y(v)
		fmt.Fprintf(b, "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>", plotLeft, plotLeft+plotWidth, y, y)
		fmt.Fprintf(b, "<text x=\"%d\" y=\"%.1f\" font-size=\"11\" text-anchor=\"end\">%.3g</text>\n", plotLeft-5, y+4, v)
	}
	end := r.Scenario.Duration.Seconds()
	for i := range 6 {
		x := float64(plotLeft) + plotWidth*float64(i)/5
		fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%d\" font-size=\"11\" text-anchor=\"middle\">%.3g s</text>\n", x, plotHeight+25, end*float64(i)/5)
	}
	for i, res := range r.Results {
		p.curve(b, res, colour(i), end)
	}
	b.WriteString("</svg>\n")
}

// mostPoints is how many points a curve has; more would not be seen.
const mostPoints = plotWidth / 2

func (p *plot) curve(b *strings.Builder, res *Result, colour string, end float64) {
	step := max(1, (len(res.Series)+mostPoints-1)/mostPoints)
	fmt.Fprintf(b, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.3\" points=\"", colour)
	for i := 0; i < len(res.Series); i += step {
		v := 0.0
		for j := i; j < min(i+step, len(res.Series)); j++ {
			v = math.Max(v, p.value(&res.Series[j]))
		}
		if v > 0 || !p.log {
			fmt.Fprintf(b, "%.1f,%.1f ", plotLeft+plotWidth*res.Series[i].At/end, p.y(v))
		}
	}
	b.WriteString("\"/>\n")
}

// y is where a value lies, from the top.
func (p *plot) y(v float64) float64 {
	share := 0.0
	switch {
	case p.hi == p.lo:
	case p.log:
		share = math.Log(v/p.lo) / math.Log(p.hi/p.lo)
	default:
		share = (v - p.lo) / (p.hi - p.lo)
	}
	return 5 + plotHeight*(1-share)
}

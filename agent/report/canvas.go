package report

import (
	"fmt"
	"html/template"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

// canvas is what a plot is drawn on.
type canvas interface {
	// grid draws a line behind everything.
	grid(from, to spot)
	// cell fills a rectangle of a heat map, the stronger the larger share is, from 0 to 1.
	cell(share float64, corner spot, width, height float64)
	// line draws through spots, bar fills a rectangle, dot a point; ring draws around one.
	line(s stroke, through ...spot)
	bar(s stroke, corner spot, width, height float64)
	dot(s stroke, at spot, of *Point)
	ring(s stroke, at spot)
	// text writes at a place of the base line.
	text(k textKind, at spot, text string)
}

// spot is a place in the drawing, from its upper left corner.
type spot struct{ x, y float64 }

// stroke is the number of a colour and of a pattern of dashes, 0 for none.
type stroke struct{ colour, dashes int }

// String returns the classes of the style sheet.
func (s stroke) String() string {
	class := "c" + strconv.Itoa(s.colour)
	if s.dashes > 0 {
		class += " d" + strconv.Itoa(s.dashes)
	}
	return class
}

// textKind is where a text is anchored and how it looks; its value is a class of the style
// sheet.
type textKind string

const (
	plainText textKind = ""
	xText     textKind = "x" // centred
	yText     textKind = "y" // ends at the place
	markText  textKind = "m" // centred, strong
	titleText textKind = "title"
)

const (
	lineWidth  = 1.6
	dotRadius  = 2.6
	ringRadius = 7.0
)

// dashes are the lengths of dashes and gaps by pattern.
var dashes = [][2]float64{1: {6, 3}, 2: {2, 3}}

// svgCanvas writes SVG elements that the style sheet of a page gives their look.
type svgCanvas struct{ *strings.Builder }

func (c svgCanvas) grid(from, to spot) {
	fmt.Fprintf(c, `<path class="grid" d="M%.1f %.1fL%.1f %.1f"/>`, from.x, from.y, to.x, to.y)
}

func (c svgCanvas) cell(share float64, corner spot, width, height float64) {
	fmt.Fprintf(c, `<rect class="cell" fill-opacity="%.2f" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, share, corner.x, corner.y, width, height)
}

func (c svgCanvas) line(s stroke, through ...spot) {
	fmt.Fprintf(c, `<path class="line %s" d="`, s)
	for i, at := range through {
		fmt.Fprintf(c, "%c%.1f %.1f", "ML"[min(i, 1)], at.x, at.y)
	}
	c.WriteString(`"/>`)
}

func (c svgCanvas) bar(s stroke, corner spot, width, height float64) {
	fmt.Fprintf(c, `<rect class="bar %s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, s, corner.x, corner.y, width, height)
}

func (c svgCanvas) dot(s stroke, at spot, of *Point) {
	if of.Link != "" {
		fmt.Fprintf(c, `<a href="%s" tabindex="-1">`, template.HTMLEscapeString(of.Link))
		defer c.WriteString(`</a>`)
	}
	fmt.Fprintf(c, `<circle class="dot %s" cx="%.1f" cy="%.1f" r="%g"`, s, at.x, at.y, dotRadius)
	if of.Title == "" {
		c.WriteString(`/>`)
		return
	}
	fmt.Fprintf(c, `><title>%s</title></circle>`, template.HTMLEscapeString(of.Title))
}

func (c svgCanvas) ring(s stroke, at spot) {
	fmt.Fprintf(c, `<circle class="line %s" cx="%.1f" cy="%.1f" r="%g"/>`, s, at.x, at.y, ringRadius)
}

func (c svgCanvas) text(k textKind, at spot, text string) {
	if k != plainText {
		fmt.Fprintf(c, `<text class="%s" x="%.1f" y="%.1f">%s</text>`, k, at.x, at.y, template.HTMLEscapeString(text))
		return
	}
	fmt.Fprintf(c, `<text x="%.1f" y="%.1f">%s</text>`, at.x, at.y, template.HTMLEscapeString(text))
}

// pixels is how many there are for each unit of a drawing.
const pixels = 3

// pngCanvas draws in the light colours of the style sheet.
type pngCanvas struct {
	*image.RGBA
	faces *faces
}

func newPNGCanvas(width, height float64) (*pngCanvas, error) {
	f, err := newFaces()
	if err != nil {
		return nil, err
	}
	c := &pngCanvas{image.NewRGBA(image.Rect(0, 0, int(math.Ceil(width*pixels)), int(math.Ceil(height*pixels)))), f}
	draw.Draw(c.RGBA, c.Bounds(), image.NewUniform(lightColours()["back"]), image.Point{}, draw.Src)
	return c, nil
}

func (c *pngCanvas) encode(w io.Writer) error { return png.Encode(w, c.RGBA) }

// lightColours are those of the style sheet by name, as on white paper.
var lightColours = sync.OnceValue(func() map[string]color.Color {
	var style strings.Builder
	if err := page.ExecuteTemplate(&style, "style", nil); err != nil {
		panic(err) // a template of this package
	}
	all := map[string]color.Color{}
	for _, m := range regexp.MustCompile(`--([a-z0-9]+): #([0-9a-f]{3,6});`).FindAllStringSubmatch(style.String(), -1) {
		hex := m[2]
		if len(hex) == 3 {
			hex = string([]byte{hex[0], hex[0], hex[1], hex[1], hex[2], hex[2]})
		}
		v, err := strconv.ParseUint(hex, 16, 32)
		if _, known := all[m[1]]; err == nil && !known { // the dark ones are later
			all[m[1]] = color.RGBA{uint8(v >> 16), uint8(v >> 8), uint8(v), 255} //nolint:gosec // bytes of it
		}
	}
	return all
})

// faces are the fonts of a drawing. They have Latin, Greek and Cyrillic letters.
type faces struct{ plain, strong, title font.Face }

func newFaces() (*faces, error) {
	face := func(data []byte, size float64) (font.Face, error) {
		f, err := opentype.Parse(data)
		if err != nil {
			return nil, fmt.Errorf("read font: %w", err)
		}
		return opentype.NewFace(f, &opentype.FaceOptions{Size: size * pixels, DPI: 72})
	}
	plain, err := face(goregular.TTF, 11)
	if err != nil {
		return nil, err
	}
	strong, err := face(gobold.TTF, 11)
	if err != nil {
		return nil, err
	}
	title, err := face(gobold.TTF, 13)
	return &faces{plain, strong, title}, err
}

// fill fills the polygons, which all go round in the same direction.
func (c *pngCanvas) fill(colour color.Color, polygons ...[]spot) {
	low, high := spot{math.Inf(1), math.Inf(1)}, spot{math.Inf(-1), math.Inf(-1)}
	for _, p := range polygons {
		for _, at := range p {
			low, high = spot{min(low.x, at.x), min(low.y, at.y)}, spot{max(high.x, at.x), max(high.y, at.y)}
		}
	}
	if high.x < low.x {
		return
	}
	// Only where they are: a rasterizer of the whole drawing for each of them takes minutes.
	area := image.Rect(int(low.x*pixels)-1, int(low.y*pixels)-1, int(high.x*pixels)+2, int(high.y*pixels)+2)
	r := vector.NewRasterizer(area.Dx(), area.Dy())
	for _, p := range polygons {
		for i, at := range p {
			x, y := float32(at.x*pixels)-float32(area.Min.X), float32(at.y*pixels)-float32(area.Min.Y)
			if i == 0 {
				r.MoveTo(x, y)
			} else {
				r.LineTo(x, y)
			}
		}
		r.ClosePath()
	}
	r.Draw(c.RGBA, area, image.NewUniform(colour), image.Point{})
}

// disc is a circle as a polygon.
func disc(at spot, radius float64) []spot {
	const corners = 32
	p := make([]spot, corners)
	for i := range p {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / corners)
		p[i] = spot{at.x + radius*cos, at.y + radius*sin}
	}
	return p
}

// thick is a part of a line as a polygon; nil if it has no length.
func thick(from, to spot, width float64) []spot {
	dx, dy := to.x-from.x, to.y-from.y
	length := math.Hypot(dx, dy)
	if length == 0 {
		return nil
	}
	dx, dy = dx/length*width/2, dy/length*width/2
	return []spot{{from.x + dy, from.y - dx}, {to.x + dy, to.y - dx}, {to.x - dy, to.y + dx}, {from.x - dy, from.y + dx}}
}

func (c *pngCanvas) colour(s stroke) color.Color {
	return lightColours()["c"+strconv.Itoa(s.colour)]
}

func (c *pngCanvas) grid(from, to spot) {
	c.fill(lightColours()["line"], thick(from, to, 1))
}

func (c *pngCanvas) cell(share float64, corner spot, width, height float64) {
	r, g, b, _ := c.colour(stroke{}).RGBA()
	faint := color.NRGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), uint8(share * 255)} //nolint:gosec // bytes
	c.fill(faint, []spot{corner, {corner.x + width, corner.y}, {corner.x + width, corner.y + height}, {corner.x, corner.y + height}})
}

func (c *pngCanvas) line(s stroke, through ...spot) {
	var polygons [][]spot
	add := func(from, to spot) {
		polygons = append(polygons, thick(from, to, lineWidth), disc(from, lineWidth/2), disc(to, lineWidth/2))
	}
	walked := 0.0
	for i := 1; i < len(through); i++ {
		from, to := through[i-1], through[i]
		if s.dashes == 0 {
			add(from, to)
			continue
		}
		pattern := dashes[s.dashes]
		length := math.Hypot(to.x-from.x, to.y-from.y)
		at := func(d float64) spot {
			return spot{from.x + (to.x-from.x)*d/length, from.y + (to.y-from.y)*d/length}
		}
		for d := 0.0; d < length; {
			phase := math.Mod(walked+d, pattern[0]+pattern[1])
			rest := pattern[0] - phase
			if rest > 0 {
				polygons = append(polygons, thick(at(d), at(min(d+rest, length)), lineWidth))
			} else {
				rest += pattern[1]
			}
			d += max(rest, 0.01)
		}
		walked += length
	}
	c.fill(c.colour(s), polygons...)
}

func (c *pngCanvas) bar(s stroke, corner spot, width, height float64) {
	r, g, b, _ := c.colour(s).RGBA()
	faint := color.NRGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), 178} //nolint:gosec // bytes; 70 %
	c.fill(faint, []spot{corner, {corner.x + width, corner.y}, {corner.x + width, corner.y + height}, {corner.x, corner.y + height}})
}

func (c *pngCanvas) dot(s stroke, at spot, _ *Point) { c.fill(c.colour(s), disc(at, dotRadius)) }

func (c *pngCanvas) ring(s stroke, at spot) {
	around := disc(at, ringRadius)
	c.line(stroke{colour: s.colour}, append(around, around[0])...)
}

func (c *pngCanvas) text(k textKind, at spot, text string) {
	d := font.Drawer{Dst: c.RGBA, Face: c.faces.plain, Src: image.NewUniform(lightColours()["quiet"])}
	switch k {
	case markText:
		d.Face, d.Src = c.faces.strong, image.NewUniform(lightColours()["text"])
	case titleText:
		d.Face, d.Src = c.faces.title, image.NewUniform(lightColours()["text"])
	}
	x := fixed.Int26_6(at.x * pixels * 64)
	switch width := d.MeasureString(text); k {
	case xText, markText:
		x -= width / 2
	case yText:
		x -= width
	}
	d.Dot = fixed.Point26_6{X: x, Y: fixed.Int26_6(at.y * pixels * 64)}
	d.DrawString(text)
}

package report

import (
	"bytes"
	"image/color"
	"image/png"
	"testing"
)

// A picture has the colours of its lines, also of a fit, whose line has gaps.
func TestPNG(t *testing.T) {
	p := &Plot{Title: "tps by threads", X: Axis{Title: "threads"}, Lines: []PlotLine{
		{Name: "measured", Points: []Point{{X: 1, Y: 10, Low: 5, High: 15}, {X: 2, Y: 20, Low: 20, High: 20}}},
		{Name: "fit", Fit: true, Points: []Point{{X: 1, Y: 1}, {X: 1, Y: 1}, {X: 2, Y: 2}}},
	}, Marks: []PlotMark{{2, 20, "best", 0}}}
	var b bytes.Buffer
	if err := p.WritePNG(&b); err != nil {
		t.Fatal(err)
	}
	picture, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	if size := picture.Bounds().Size(); size.X != pixels*int(chartWidth) || size.Y != int(pixels*p.height(true)) {
		t.Errorf("the picture is %v", size)
	}
	found := map[color.Color]int{}
	for y := range picture.Bounds().Dy() {
		for x := range picture.Bounds().Dx() {
			found[color.RGBAModel.Convert(picture.At(x, y))]++
		}
	}
	for name, least := range map[string]int{"back": 100000, "c0": 3000, "c1": 1000, "line": 3000, "text": 100, "quiet": 100} {
		if n := found[lightColours()[name]]; n < least {
			t.Errorf("%d pixels have the colour %s", n, name)
		}
	}
	if found[lightColours()["c1"]] > found[lightColours()["c0"]] {
		t.Error("the fit has no gaps")
	}
}

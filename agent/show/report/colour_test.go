package report

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/show/document"
)

// rgb is a colour in linear sRGB.
type rgb [3]float64

func parseColour(t *testing.T, text string) rgb {
	t.Helper()
	n, err := strconv.ParseUint(strings.TrimPrefix(text, "#"), 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	var c rgb
	for i := range c {
		v := float64(n>>(16-8*i)&255) / 255
		if c[i] = v / 12.92; v > 0.04045 {
			c[i] = math.Pow((v+0.055)/1.055, 2.4)
		}
	}
	return c
}

func (c rgb) times(m [3]rgb) rgb {
	var out rgb
	for i := range out {
		for j := range c {
			out[i] += m[i][j] * c[j]
		}
		out[i] = min(1, max(0, out[i]))
	}
	return out
}

// How people without one kind of cones see a colour: Machado, Oliveira and Fernandes
// 2009, https://doi.org/10.1109/TVCG.2009.113, severity 1.
var sights = map[string][3]rgb{
	"normal":       {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
	"protanopia":   {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
	"deuteranopia": {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
}

// oklab returns the colour in a space in which distances are as they are seen:
// https://bottosson.github.io/posts/oklab.
func (c rgb) oklab() rgb {
	l := math.Cbrt(0.4122214708*c[0] + 0.5363325363*c[1] + 0.0514459929*c[2])
	m := math.Cbrt(0.2119034982*c[0] + 0.6806995451*c[1] + 0.1073969566*c[2])
	s := math.Cbrt(0.0883024619*c[0] + 0.2817188376*c[1] + 0.6299787005*c[2])
	return rgb{
		0.2104542553*l + 0.7936177850*m - 0.0040720468*s,
		1.9779984951*l - 2.4285922050*m + 0.4505937099*s,
		0.0259040371*l + 0.7827717662*m - 0.8086757660*s,
	}
}

func (c rgb) distance(o rgb) float64 {
	return math.Sqrt((c[0]-o[0])*(c[0]-o[0]) + (c[1]-o[1])*(c[1]-o[1]) + (c[2]-o[2])*(c[2]-o[2]))
}

func (c rgb) luminance() float64 { return 0.2126*c[0] + 0.7152*c[1] + 0.0722*c[2] }

// palette returns the colours of the palette whose names match, in the order of the sheet: the light theme's, then the
// dark theme's.
func palette(t *testing.T, name string) (light, dark []string) {
	t.Helper()
	css, err := os.ReadFile("../document/palette.css")
	if err != nil {
		t.Fatal(err)
	}
	first, second, _ := strings.Cut(string(css), "@media")
	for part, into := range map[string]*[]string{first: &light, second: &dark} {
		for _, m := range regexp.MustCompile(`--`+name+`: (#[0-9a-f]{6});`).FindAllStringSubmatch(part, -1) {
			*into = append(*into, m[1])
		}
	}
	return light, dark
}

// distinguishable fails unless all colours differ for everyone, and from the backgrounds.
func distinguishable(t *testing.T, colours []string, contrast float64, backs ...string) {
	t.Helper()
	const apart = 0.09 // in Oklab; that of two neighbours in a grey scale of ten is 0.1
	for j, name := range colours {
		for _, back := range backs {
			c, b := parseColour(t, name).luminance(), parseColour(t, back).luminance()
			if got := (max(c, b) + 0.05) / (min(c, b) + 0.05); got < contrast {
				t.Errorf("%s on %s has a contrast of %.1f, want %.1f", name, back, got, contrast)
			}
		}
		for _, other := range colours[:j] {
			for sight, m := range sights {
				if d := parseColour(t, name).times(m).oklab().distance(parseColour(t, other).times(m).oklab()); d < apart {
					t.Errorf("%s and %s: distance %.3f with %s, want %.2f", name, other, d, sight, apart)
				}
			}
		}
	}
}

// TestColours guards that the lines of a chart can be distinguished, also by people who don't see red or green, and
// against the background.
func TestColours(t *testing.T) {
	light, dark := palette(t, "c[0-9]")
	if len(light) != colours || len(dark) != colours {
		t.Fatalf("%d colours for light backgrounds, %d for dark ones", len(light), len(dark))
	}
	distinguishable(t, light, 2.8, "#ffffff")
	distinguishable(t, dark, 2.8, "#1a1f28")
}

// TestColoursOfSessions guards that each class of sessions has its colour, which Grafana's dashboards find by the class,
// and that areas of all of them can be distinguished on the backgrounds of page, report and Grafana.
func TestColoursOfSessions(t *testing.T) {
	var all []string
	for _, m := range engine.SessionMeasures() {
		if want := "sessions_" + engine.SessionClass(m); m.ID != want {
			t.Errorf("the measure of the class %s is %s", engine.SessionClass(m), m.ID)
		}
		light, dark := palette(t, "m-"+m.ID)
		if len(light) != 1 || len(dark) != 0 || !strings.Contains(document.Style, ".m-"+m.ID+" {") {
			t.Errorf("%s has %d colours for all themes, want 1 with its class", m.ID, len(light))
		}
		all = append(all, light...)
	}
	distinguishable(t, all, 2.4, "#ffffff", "#1a1f28", "#181b1f")
}

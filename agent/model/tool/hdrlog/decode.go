package hdrlog

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// bar counts whole numbers between low and high, both included.
type bar struct {
	low, high int64
	n         uint64
}

var errEncoding = errors.New("not a histogram in HdrHistogram's encoding V1 or V2")

// decode reads the last column of a log line.
func decode(text []byte) ([]bar, error) {
	if len(text) < 8 || !bytes.HasPrefix(text, []byte("HIST")) {
		return nil, errEncoding
	}
	raw, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil || len(raw) < 8 {
		return nil, errEncoding
	}
	if cookie := binary.BigEndian.Uint32(raw); cookie&^0xf0 == compressedV1 {
		return decodeV1(raw[8:])
	}
	h, err := hdrhistogram.Decode(text)
	if err != nil {
		return nil, err //nolint:wrapcheck // of a line that is Malformed whatever it says
	}
	var bars []bar
	for _, b := range h.Distribution() {
		if b.Count > 0 {
			bars = append(bars, bar{b.From, b.To, uint64(b.Count)})
		}
	}
	return bars, nil
}

// Encoding V1, written by HdrHistogram 2.1.0 to 2.1.8 (AbstractHistogram.java), which the library
// does not read. The cookie gives the size of the counts.
const (
	compressedV1, plainV1 = 0x1c849302, 0x1c849301
	headerV1              = 40
	maxPayload            = 16 << 20
)

func decodeV1(compressed []byte) ([]bar, error) {
	z, err := zlib.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, errEncoding
	}
	data, err := io.ReadAll(io.LimitReader(z, headerV1+maxPayload))
	if err != nil || len(data) < headerV1 || binary.BigEndian.Uint32(data)&^0xf0 != plainV1 {
		return nil, errEncoding
	}
	word := int(binary.BigEndian.Uint32(data)&0xf0) >> 4
	length, digits := int(int32(binary.BigEndian.Uint32(data[4:]))), binary.BigEndian.Uint32(data[12:])
	lowest := int64(binary.BigEndian.Uint64(data[16:]))
	payload := data[headerV1:]
	if word != 2 && word != 4 && word != 8 || length < 0 || length > len(payload) || digits > 5 || lowest < 1 {
		return nil, errEncoding
	}
	// The layout: each further bucket has half as many values, twice as wide.
	unit := int(math.Floor(math.Log2(float64(lowest))))
	half := int(math.Ceil(math.Log2(2*math.Pow10(int(digits))))) - 1
	var bars []bar
	for i := 0; (i+1)*word <= length; i++ {
		var n uint64
		switch at := payload[i*word:]; word {
		case 2:
			n = uint64(binary.BigEndian.Uint16(at))
		case 4:
			n = uint64(binary.BigEndian.Uint32(at))
		default:
			n = binary.BigEndian.Uint64(at)
		}
		if n == 0 {
			continue
		}
		bucket, sub := i>>half-1, i&(1<<half-1)+1<<half
		if bucket < 0 {
			bucket, sub = 0, sub-1<<half
		}
		shift := bucket + unit
		if shift+half+1 > 62 || n > math.MaxInt64 {
			return nil, errEncoding
		}
		low := int64(sub) << shift
		bars = append(bars, bar{low, low + 1<<shift - 1, n})
	}
	return bars, nil
}

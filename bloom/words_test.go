package bloom_test

import "github.com/upbloom/upbloom/internal/testkit/bloomtest"

// Short names for the commonest words of these tests.

const key = bloomtest.Key

var (
	add                = bloomtest.Add
	afterCommand       = bloomtest.AfterCommand
	birthOf            = bloomtest.BirthOf
	canned             = bloomtest.Canned
	count              = bloomtest.Count
	database           = bloomtest.Database
	do                 = bloomtest.Do
	eachBackend        = bloomtest.EachBackend
	exists             = bloomtest.Exists
	expiring           = bloomtest.Expiring
	fillUp             = bloomtest.FillUp
	handle             = bloomtest.Handle
	handleAt           = bloomtest.HandleAt
	headerOf           = bloomtest.HeaderOf
	headerOfVersion    = bloomtest.HeaderOfVersion
	headerWordOf       = bloomtest.HeaderWordOf
	impatient          = bloomtest.Impatient
	inParts            = bloomtest.InParts
	isRefusal          = bloomtest.IsRefusal
	isSettled          = bloomtest.IsSettled
	localOf            = bloomtest.LocalOf
	mail               = bloomtest.Mail
	mails              = bloomtest.Mails
	middling           = bloomtest.Middling
	mustAdd            = bloomtest.MustAdd
	numbered           = bloomtest.Numbered
	once               = bloomtest.Once
	operations         = bloomtest.Operations
	operationsOf       = bloomtest.OperationsOf
	ownWords           = bloomtest.OwnWords
	positionsOf        = bloomtest.PositionsOf
	pttl               = bloomtest.PTTL
	settled            = bloomtest.Settled
	small              = bloomtest.Small
	sparse             = bloomtest.Sparse
	sparseOf           = bloomtest.SparseOf
	spoilt             = bloomtest.Spoilt
	stored             = bloomtest.Stored
	storedAt           = bloomtest.StoredAt
	stringOf           = bloomtest.StringOf
	wantMails          = bloomtest.WantMails
	wantNoScratch      = bloomtest.WantNoScratch
	wantNoTTL          = bloomtest.WantNoTTL
	wantScratchExpires = bloomtest.WantScratchExpires
	wantTTL            = bloomtest.WantTTL
	watch              = bloomtest.Watch
	withoutOwn         = bloomtest.WithoutOwn
)
